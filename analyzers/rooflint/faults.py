"""A fault of rooflint's own: it costs what it says, and is told once, in one line of the log."""

from __future__ import annotations

_told: set[tuple[str, str]] = set()


def say_once(sentence: str) -> None:
    """Log what a user may want to know, the first time."""
    import logging

    if (sentence, "") not in _told:
        _told.add((sentence, ""))
        logging.getLogger("rooflint").warning("%s", sentence)


def tell(cost: str, fault: Exception) -> None:
    """Log a fault by what it cost, such as `item-in-loop was left out for train.py`."""
    import logging

    log = logging.getLogger("rooflint")
    log.debug("%s", cost, exc_info=fault)
    place = place_of(fault)
    if (cost, place) not in _told:
        _told.add((cost, place))
        log.error("%s: %s", cost, place)


def place_of(fault: Exception) -> str:
    """What a fault is and where, in one line: for whoever is to mend it."""
    frame = fault.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = ""
    if frame is not None:
        file = frame.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
        where = f" in {file}:{frame.tb_lineno}"
    said = " ".join(str(fault).split())[:200]
    return f"{type(fault).__name__}{': ' if said else ''}{said}{where}"
