# needs: pydantic, attr
# %%
import pydantic, attr, typing
from pydantic import BaseModel, Field, field_validator, computed_field
class Address(BaseModel):
    street: str
    no: int = 1
class User(BaseModel):
    name: str = Field(min_length=1)
    tags: list[str] = []
    address: Address | None = None
    @field_validator('name')
    @classmethod
    def upper(cls, v): return v.upper()
    @computed_field
    @property
    def size(self) -> int: return len(self.name)
u = User(name='ana', address=Address(street='s'))
@attr.s(auto_attribs=True)
class A:
    x: int
    y: list = attr.Factory(list)
@attr.define
class B(A):
    z: str = 'z'
a = A(1); b = B(2)
people = {u.name: u}
# %% check
u.name == 'ANA' and u.size == 3 and u.address.no == 1 and people['ANA'] is u
User(name='bob').name == 'BOB' and u.model_dump()['address'] == {'street': 's', 'no': 1}
a == A(1) and a.y == [] and b.z == 'z' and attr.asdict(b) == {'x': 2, 'y': [], 'z': 'z'} and isinstance(b, A)
# %% then
try:
    User(name='')
    bad = False
except pydantic.ValidationError: bad = True
class Admin(User):
    level: int = 9
# %% check
bad and Admin(name='x').level == 9
