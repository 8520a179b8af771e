"""A simulation of bodies, heavy in attributes."""


class Vector:
    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x = x
        self.y = y
        self.z = z

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def scaled(self, factor):
        return Vector(self.x * factor, self.y * factor, self.z * factor)

    def squared(self):
        return self.x * self.x + self.y * self.y + self.z * self.z


class Body:
    def __init__(self, place, speed, mass):
        self.place = place
        self.speed = speed
        self.mass = mass


class World:
    def __init__(self, bodies):
        self.bodies = bodies
        self.time = 0.0

    def step(self, dt):
        for one in self.bodies:
            pull = Vector(0.0, 0.0, 0.0)
            for other in self.bodies:
                if other is not one:
                    apart = other.place - one.place
                    distance = apart.squared() + 0.01
                    pull = pull + apart.scaled(other.mass / (distance * distance**0.5))
            one.speed = one.speed + pull.scaled(dt)
        for one in self.bodies:
            one.place = one.place + one.speed.scaled(dt)
        self.time += dt

    def energy(self):
        return sum(0.5 * body.mass * body.speed.squared() for body in self.bodies)


world = World(
    [Body(Vector(i * 1.5, i * i * 0.3, -i * 0.7), Vector(0.1 * i, 0.0, -0.1 * i), 1.0 + i * 0.2) for i in range(6)]
)
for _ in range(300):
    world.step(0.01)
result = round(world.energy(), 9), round(world.time, 6)
