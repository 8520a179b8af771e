"""The protocol between host and worker, without I/O: messages, frames, and who may say what when."""
