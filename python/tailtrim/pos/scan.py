"""What a folder uses that is not supported, told before anything is started."""
def folder(script, images):
    return []
