"""The tables of what torch does are those that their scripts make."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from rooflint.flow import torch_returns, torch_waits
from rooflint.tables import returns, waiting

MEASURED = Path(__file__).parent / "measured"


def test_what_waits_is_what_was_measured() -> None:
    assert Path(torch_waits.__file__).read_text("utf-8") == waiting.text(MEASURED)


def test_what_torch_returns_is_what_its_schemas_say() -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    import torch

    if torch.__version__.partition("+")[0] != torch_returns.TORCH:
        pytest.skip(f"the table is of torch {torch_returns.TORCH}")
    assert Path(torch_returns.__file__).read_text("utf-8") == returns.text()


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (torch_returns.TENSOR_METHODS, "masked_fill_"),
        (torch_returns.TENSOR_VALUES, "mT"),
        (torch_returns.HOST_VALUES, "shape"),
        (torch_returns.HOST, "torch.Tensor.is_contiguous"),
        (torch_returns.LISTS, "torch.Tensor.chunk"),
        (torch_returns.VIEWS, "torch.Tensor.permute"),
        (torch_returns.TO_0_DIMENSIONS, "torch.nn.functional.cross_entropy"),
        (torch_returns.SAME_DIMENSIONS, "torch.Tensor.masked_fill"),
        (torch_returns.SIZED_BY_VALUES, "torch.nonzero"),
        (torch_returns.PROMOTES, "torch.Tensor.mul"),
        (torch_waits.WAITS, "torch.linalg.inv"),
        (torch_waits.WAITS_AT_TIMES, "torch.nn.functional.one_hot"),
    ],
)
def test_each_table_holds_what_it_says(table: frozenset[str], name: str) -> None:
    assert name in table


def test_overloads_are_told_apart() -> None:
    assert torch_returns.FIELDS["torch.Tensor.max"] == "values indices"
    assert "torch.Tensor.max" in torch_returns.FIELDS_ALONG_DIM
    assert "torch.Tensor.topk" not in torch_returns.FIELDS_ALONG_DIM
    assert torch_returns.FIELDS["torch.svd"] == "U S V"
    assert torch_returns.FIELDS["torch.linalg.svd"] == "U S Vh"


def test_a_tensor_in_place_of_a_number_is_known_by_its_parameter() -> None:
    assert torch_returns.NUMBERS["torch.Tensor.add"] == "other #alpha"
    assert "#=alpha" in torch_returns.NUMBERS["torch.Tensor.addmm"].split()
    assert torch_returns.NUMBERS["torch.nn.functional.dropout"] == "input #p"
    assert torch_returns.NUMBERS["torch.Tensor.view"] == "#*size"
    assert "torch.Tensor.clamp" not in torch_returns.NUMBERS


def test_a_folder_without_measurements_is_answered_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert waiting.main([str(tmp_path)]) == 2
    assert "holds no measurements" in capsys.readouterr().err
