package operate

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"reprise/internal/program/demoapi"
	"reprise/starter/cli"
)

// NewDemoAPICommand returns the command demo-api.
func NewDemoAPICommand(a *cli.App) *cobra.Command {
	var port int
	var ip string
	command := &cobra.Command{
		Use: "demo-api", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			api := demoapi.New(demoapi.Options{})
			url, err := api.Start(a.Interrupts.Graceful, net.JoinHostPort(ip, strconv.Itoa(port)))
			if errors.Is(err, syscall.EADDRINUSE) {
				return fmt.Errorf("%w; choose another port with --port, or 0 for a free one", err)
			}
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(a.Out, "demo API: %s\n", url)
			<-a.Interrupts.Graceful.Done()
			return api.Close()
		},
	}
	command.Flags().IntVar(&port, "port", 8088, "port to listen on, 0 for a free one")
	command.Flags().StringVar(&ip, "ip", "127.0.0.1", "address to listen on")
	return command
}
