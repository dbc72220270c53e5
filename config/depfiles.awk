# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Makes the files for dependencies that Makefile.in includes, as far as they are not there: all by one process.
# config.status starts three processes for each of a thousand, which is most of what configure takes.
#
# usage: awk -f depfiles.awk Makefile.in
{ remade = remade || /^am__depfiles_remade *=/ }
remade {
	for (i = 1; i <= NF; i++) {
		file = $i
		if (!sub(/\$\(DEPDIR\)/, ".deps", file))
			continue
		files[file] = 1
		sub(/\/[^\/]*$/, "", file)
		dirs[file] = 1
	}
	if (!/\\$/)
		exit
}
END {
	for (dir in dirs)
		list = list " '" dir "'"
	if (list != "" && system("mkdir -p" list) == 0) {
		for (file in files) {
			printf "" >> file
			close(file)
		}
	}
}
