	.file	"3106caadb31ba47a1dcedad0cee3e956-stdin.c"
	.ident	"clang version 22.1.8"
	.section	".note.GNU-stack","",@progbits
	.addrsig
