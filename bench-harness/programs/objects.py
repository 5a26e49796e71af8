# Objects, dictionaries and strings, as an ordinary Python program makes them.
import random

random.seed(7)


class Node:
    __slots__ = ("key", "left", "right")

    def __init__(self, key):
        self.key, self.left, self.right = key, None, None


def insert(root, key):
    while True:
        side = "left" if key < root.key else "right"
        below = getattr(root, side)
        if below is None:
            setattr(root, side, Node(key))
            return
        root = below


root = Node(0.5)
for _ in range(15000):
    insert(root, random.random())

words = ["word%d" % random.randrange(8000) for _ in range(60000)]
index = {}
for place, word in enumerate(words):
    index.setdefault(word, []).append(str(place))
text = " ".join(word + ":" + ",".join(places) for word, places in sorted(index.items()))
for _ in range(3):
    text = " ".join(part.swapcase() for part in text.split(" ")[::-1])
rows = [str(i) * (1 + i % 15) for i in range(50000)]
for _ in range(2):
    rows = [row[1:] + row[:1] for row in rows]
    random.shuffle(rows)
print(len(index), len(text), len(rows))
