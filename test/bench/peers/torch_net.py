"""The network of the PyTorch contenders, and its batches, cut from a shuffled tensor in memory (quicker than its DataLoader)."""

import torch

import mnist

BATCH = 64


class Net:
    def __init__(self):
        self.first, self.last = torch.nn.Linear(784, 128), torch.nn.Linear(128, 10)
        self.model = torch.nn.Sequential(self.first, torch.nn.ReLU(), self.last)
        self.loss_of = torch.nn.CrossEntropyLoss()

    def accuracy(self, folder):
        weights = (self.first.weight.T, self.first.bias, self.last.weight.T, self.last.bias)
        return mnist.accuracy([w.detach().numpy() for w in weights], folder)


def batches(folder):
    x, y = (torch.from_numpy(v) for v in mnist.part(folder, "train"))
    while True:
        for index in torch.randperm(len(x)).split(BATCH):
            yield x[index], y[index]


def train(a, model, loss_of, optimizer, mark):
    """mark() is called when the warm-up is over, and when the steps are done. Returns what it returned."""
    for done, (images, labels) in enumerate(batches(a.data)):
        if done == a.warm:
            begun = mark()
        if done == a.warm + a.steps:
            return begun, mark()
        optimizer.zero_grad()
        loss_of(model(images), labels).backward()
        optimizer.step()
