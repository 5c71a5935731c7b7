from varifold._engine.admission import Admission

class JsonDoor(Admission):
    def check_json(self, data: bytes | bytearray | str) -> None: ...
