# Documents that are written as JSON, read back, and put into another order.
import json
import random

random.seed(11)
people = [
    {"id": i, "name": "person %d" % i, "marks": [str(random.random()) for _ in range(7)], "more": {"x": i / 3, "none": None, "list": [i] * 4}}
    for i in range(4000)
]
for _ in range(4):
    text = json.dumps(people)
    people = sorted(json.loads(text), key=lambda person: person["marks"][0])
print(len(text))
