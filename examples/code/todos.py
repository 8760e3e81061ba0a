files = tools.fs_search(pattern="TODO", output="files").splitlines()
for path in files:
    text = tools.fs_read(path=path)
    print(path, text.count("TODO"))
