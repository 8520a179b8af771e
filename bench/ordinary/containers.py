"""A linked list, a stack, a binary tree, a cache and a queue, as classes of the program's own."""


class Node:
    def __init__(self, key, value=None):
        self.key = key
        self.value = value
        self.left = None
        self.right = None
        self.next = None


class Tree:
    def __init__(self):
        self.root = None
        self.size = 0

    def insert(self, key, value):
        if self.root is None:
            self.root = Node(key, value)
            self.size = 1
            return
        node = self.root
        while True:
            if key == node.key:
                node.value = value
                return
            if key < node.key:
                if node.left is None:
                    node.left = Node(key, value)
                    break
                node = node.left
            else:
                if node.right is None:
                    node.right = Node(key, value)
                    break
                node = node.right
        self.size += 1

    def __iter__(self):
        return self._walk(self.root)

    def _walk(self, node):
        if node is not None:
            yield from self._walk(node.left)
            yield node.key
            yield from self._walk(node.right)


class Chain:
    def __init__(self):
        self.head = None

    def push(self, key):
        node = Node(key)
        node.next = self.head
        self.head = node

    def reverse(self):
        behind, node = None, self.head
        while node:
            node.next, behind, node = behind, node, node.next
        self.head = behind

    def __len__(self):
        count, node = 0, self.head
        while node:
            count += 1
            node = node.next
        return count


class Stack:
    def __init__(self):
        self._items = []

    def push(self, item):
        self._items.append(item)

    def pop(self):
        return self._items.pop()

    @property
    def empty(self):
        return not self._items


tree = Tree()
for i in range(2500):
    tree.insert(i * 7919 % 2503, i)
chain = Chain()
for i in range(8000):
    chain.push(i)
chain.reverse()
stack = Stack()
for i in range(8000):
    stack.push(i)
popped = 0
while not stack.empty:
    popped += stack.pop()
result = tree.size, sum(tree), len(chain), chain.head.key, popped
