import pytest

from tests.oracles.harness import SETTINGS, follow_in
from tests.oracles.ogd import PlainOGD
from varifold import OGD


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("c", [1.0, 10.0])
def test_follows_the_equations(c, setting):
    follow_in(lambda **kw: OGD(c=c, **kw), lambda: PlainOGD(c), setting)
