# %%
documents = [
    "the cat sat on the mat with another cat",
    "dogs and cats are common pets",
    "stocks fell as markets closed lower",
    "the market rallied and stocks rose",
    "a dog chased the cat around the garden",
    "investors sold shares and bought bonds",
]
labels = ["pets", "pets", "money", "money", "pets", "money"]

# %%
from sklearn.feature_extraction.text import TfidfVectorizer

vectorizer = TfidfVectorizer(stop_words="english")
matrix = vectorizer.fit_transform(documents)
matrix

# %%
from sklearn.naive_bayes import MultinomialNB

classifier = MultinomialNB().fit(matrix, labels)
classifier.predict(vectorizer.transform(["my dog likes the garden", "bonds and stocks"]))

# %%
from sklearn.metrics.pairwise import cosine_similarity

near = cosine_similarity(matrix)
near.round(2)[0]

# %%
words = vectorizer.get_feature_names_out()
strongest = {label: words[row.argsort()[-2:]].tolist() for label, row in zip(classifier.classes_, classifier.feature_log_prob_)}
strongest

# %%
assert classifier.score(matrix, labels) == 1.0 and matrix.shape[0] == 6
