package main

import (
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"reprise/internal/program/demoapi"
)

func newDemoAPICommand(a *app) *cobra.Command {
	var port int
	var ip string
	command := &cobra.Command{
		Use: "demo-api", Short: "Serve the API that the examples call", Args: cobra.NoArgs,
		Long: `Serve the demo API until Ctrl-C: paginated lists that fail, limit rates and go
missing on purpose, and collections whose rows are inserted, updated and deleted
between any two reads: /api/v1/moving/NAME?seed=1, with what every read was
answered at /moving/NAME. Sales that PUT and DELETE of /api/v1/sales/ID change are read from a
time on: /api/v1/sales?updated_since=2026-01-01T00:02:00Z. GET / lists its routes. It has no access control.`,
		Example: `  starter demo-api --port 8088
  curl http://127.0.0.1:8088/api/v1/patients
  curl 'http://127.0.0.1:8088/api/v1/moving/orders?seed=1&limit=3&after=30'`,
		RunE: func(*cobra.Command, []string) error {
			api := demoapi.New(demoapi.Options{})
			url, err := api.Start(a.interrupts.graceful, net.JoinHostPort(ip, strconv.Itoa(port)))
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(a.Out, "demo API: %s\n", url)
			<-a.interrupts.graceful.Done()
			return api.Close()
		},
	}
	command.Flags().IntVar(&port, "port", 8088, "port to listen on, 0 for a free one")
	command.Flags().StringVar(&ip, "ip", "127.0.0.1", "address to listen on")
	return command
}
