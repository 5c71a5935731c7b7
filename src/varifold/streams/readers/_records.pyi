class Records:
    line: int
    opened: int
    def records(self, data: bytes, most: int, final: bool) -> list[tuple[int, list[str], int]]: ...
