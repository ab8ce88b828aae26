"""The notebooks as files: their catalogue, the students' copies, running them, their pages."""
