"""Adds to a wheel the licences of the packages in its library and the bill of materials, and notes them in its RECORD.

Called as: wheel.py WHEEL LICENCES BILL
"""

import base64
import hashlib
import pathlib
import sys
import zipfile


def main(wheel: pathlib.Path, licences: pathlib.Path, bill: pathlib.Path) -> None:
    """Writes the wheel anew, with the same files in the same order and the two added ones."""
    with zipfile.ZipFile(wheel) as archive:
        files = {entry: archive.read(entry) for entry in archive.infolist()}
    info = next(entry.filename.split("/")[0] for entry in files if entry.filename.endswith(".dist-info/RECORD"))
    record = next(entry for entry in files if entry.filename == f"{info}/RECORD")
    metadata = next(entry for entry in files if entry.filename == f"{info}/METADATA")
    files[metadata] = with_licence(files[metadata].decode(), licences.name).encode()
    lines = [line for line in files.pop(record).decode().splitlines() if not line.startswith(f"{info}/METADATA,")]
    added = {f"{info}/licenses/{licences.name}": licences, f"{info}/sboms/{bill.name}": bill}
    for name, path in added.items():
        entry = zipfile.ZipInfo(name, date_time=record.date_time)
        entry.external_attr, entry.compress_type = record.external_attr, zipfile.ZIP_DEFLATED
        files[entry] = path.read_bytes()
    new = [entry for entry in files if entry is metadata or entry.filename in added]
    # The line of RECORD itself, without a hash, stays last.
    lines[-1:-1] = [record_line(entry.filename, files[entry]) for entry in new]
    files[record] = ("\n".join(lines) + "\n").encode()
    with zipfile.ZipFile(wheel, "w") as archive:
        for entry, data in files.items():
            archive.writestr(entry, data)


def with_licence(metadata: str, name: str) -> str:
    """Returns the METADATA with one more `License-File`, after the last one."""
    head, separator, body = metadata.partition("\n\n")
    lines = head.splitlines()
    last = max(at for at, line in enumerate(lines) if line.startswith("License-File: "))
    lines.insert(last + 1, f"License-File: {name}")
    return "\n".join(lines) + separator + body


def record_line(name: str, data: bytes) -> str:
    """Returns the line of RECORD for a file."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


if __name__ == "__main__":
    main(*(pathlib.Path(arg) for arg in sys.argv[1:]))
