"""The level `sandboxed`: sessions in containers of podman or docker."""
