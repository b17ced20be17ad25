// Command starter starts playbooks, follows them and helps to write them.
package main

import (
	"context"
	"os"

	"reprise/starter/cli"
)

func main() {
	os.Exit(Main(context.Background(), os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
