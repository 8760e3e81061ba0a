"""Pictures, links and several blocks at once."""

import zlib
from struct import pack

from longshore import Image, ResourceLink, Server

app = Server("images", version="1.0.0")


def png(red: int, green: int, blue: int, side: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes((red, green, blue)) * side) * side
    header = pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@app.tool(effects="read")
def swatch(red: int, green: int, blue: int) -> list[str | Image]:
    """Show a color."""
    return [f"#{red:02x}{green:02x}{blue:02x}", Image(png(red, green, blue, 16))]


@app.resource("swatch://{red}/{green}/{blue}", mime_type="image/png")
def large(red: int, green: int, blue: int) -> bytes:
    """A large picture of a color."""
    return png(red, green, blue, 256)


@app.tool(effects="read")
def poster(red: int, green: int, blue: int) -> ResourceLink:
    """Link to a large picture of a color, which the client reads if it needs it."""
    return ResourceLink(f"swatch://{red}/{green}/{blue}", "poster", mime_type="image/png")


if __name__ == "__main__":
    app.run()
