from rooflint.units import show_bytes, show_flop_rate, show_number, show_share, show_us


def test_a_number_has_three_significant_digits_and_no_exponent():
    assert [show_number(x) for x in (0, 0.05123, 41.234, 999.4, 999.6, 1234.5, 0.00000049)] == [
        "0", "0.0512", "41.2", "999", "1,000", "1,234", "0"
    ]  # fmt: skip


def test_a_time_takes_the_unit_that_fits():
    assert [show_us(x) for x in (0.05, 51.2, 999.7, 10_500, 1_250_000)] == [
        "50 ns", "51.2 µs", "1 ms", "10.5 ms", "1.25 s"
    ]  # fmt: skip


def test_sizes_and_rates_are_decimal():
    assert show_bytes(71e6) == "71 MB"
    assert show_flop_rate(34.2e12) == "34.2 TFLOP/s"


def test_a_small_share_never_reads_as_nothing():
    assert [show_share(x) for x in (0, 0.0004, 0.005, 0.0996, 0.61)] == [
        "0 %", "under 0.1 %", "0.5 %", "10 %", "61 %"
    ]  # fmt: skip
