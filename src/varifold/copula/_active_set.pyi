class ActiveSet:
    max_dense: int
    nodes: int
    idle: int
    def role(self, slot: int) -> str: ...
