"""A folder as one zip archive: the same files give the same bytes, whenever and wherever."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that the format knows


def pack(folder: Path, archive: Path, top: str, beside: Mapping[str, str] | None = None) -> Path:
    """Every file under ``folder`` into ``archive``, beneath one folder ``top``.

    With texts ``beside`` it, by name, the files lie one folder deeper, in ``top/site``.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != archive)
    inner = f"{top}/site" if beside else top
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w") as packed:
        for name, text in sorted((beside or {}).items()):
            _add(packed, f"{top}/{name}", text.encode())
        for path in files:
            _add(packed, f"{inner}/{path.relative_to(folder).as_posix()}", path.read_bytes())
    return archive


def _add(packed: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    entry.create_system = 3  # the same on every system
    packed.writestr(entry, content, compresslevel=9)
