package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/seal"
	"reprise/interpreter/login"
	"reprise/starter/cli"
	"reprise/starter/session"
)

// loginPatience is how long the command waits for the user to log in.
const loginPatience = 15 * time.Minute

// loginOptions is the command line of auth login.
type loginOptions struct {
	authOptions

	device bool
	port   int
}

func newAuthLoginCommand(a *cli.App) *cobra.Command {
	o := &loginOptions{}
	command := &cobra.Command{
		Use: "login NAME", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			switch err := checkConnection(args[0]); {
			case err != nil:
				return err
			case o.device && o.port != 0:
				return cli.UsageError("give either --device or --port: the login of a device needs no port")
			}
			return session.WithServer(a, &o.server, func(ctx context.Context, s *session.Session) error {
				ctx, cancel := context.WithTimeout(ctx, loginPatience)
				defer cancel()
				if err := s.NeedsWorker(ctx, "a worker has the connection that the login is for"); err != nil {
					return err
				}
				return logIn(ctx, a, s, args[0], o)
			})
		},
	}
	command.Flags().BoolVar(&o.device, "device", false, "log in with a code that you type on another machine, without a browser here")
	command.Flags().IntVar(&o.port, "port", 0, "port of this machine for the redirect after the login, if the API accepts only a registered one; 0 is any")
	o.addFlags(command)
	return command
}

// logIn has the user log in, and the worker exchange the resulting code for tokens.
func logIn(ctx context.Context, a *cli.App, s *session.Session, connection string, o *loginOptions) error {
	proof := login.FinishRequest{BeginRequest: login.BeginRequest{Connection: connection, By: cli.Whoami(), Device: o.device}}
	var back *redirect
	if !o.device {
		var err error
		if back, err = listenForRedirect(o.port); err != nil {
			return err
		}
		defer back.closeServer()
		proof.Redirect, proof.State = back.url, back.state
	}
	var challenge login.Challenge
	if err := updateLogin(ctx, s, connection, login.BeginUpdate, proof.BeginRequest, &challenge); err != nil {
		return err
	}
	if challenge.Failure != nil {
		return errors.New(challenge.Failure.Message)
	}
	proof.Secret, proof.ExpiresAt = challenge.Secret, challenge.ExpiresAt
	if o.device {
		a.Notef("Open %s and enter the code %s", challenge.URL, challenge.UserCode)
	} else {
		a.Notef("Open this page to log in:\n%s", challenge.URL)
		code, err := back.awaitCode(ctx)
		if err != nil {
			return err
		}
		if proof.Code, err = seal.SealTo(challenge.PublicKey, []byte(code), login.CodePlace(connection)); err != nil {
			return err
		}
	}
	var result login.FinishResult
	if err := updateLogin(ctx, s, connection, login.FinishUpdate, proof, &result); err != nil {
		return err
	}
	if result.Failure != nil {
		return errors.New(result.Failure.Message)
	}
	return a.ShowDocument(o.output, result.Status, statusText(result.Status))
}

// redirect is a listener on this machine that receives the authorization code of a login (RFC 8252, section 7.3).
type redirect struct {
	url, state string
	server     *http.Server
	came       chan arrival
}

// arrival is the result of a login: its code, or why there is none.
type arrival struct {
	code string
	err  error
}

// listenForRedirect starts to listen for the redirect of a login.
func listenForRedirect(port int) (*redirect, error) {
	listener, err := session.ListenLocally(fmt.Sprint(port))
	if err != nil {
		return nil, fmt.Errorf("listen for the login: %w", err)
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	r := &redirect{url: fmt.Sprintf("http://127.0.0.1:%d/callback", address.Port), state: rand.Text(), came: make(chan arrival, 1)}
	const headerTimeout = 10 * time.Second
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: headerTimeout}
	go func() { _ = r.server.Serve(listener) }() // until it is closed
	return r, nil
}

// ServeHTTP accepts the authorization code. A request without the right state is somebody else's: it is refused, and
// the login continues.
func (r *redirect) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	if request.URL.Path != "/callback" || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(r.state)) != 1 {
		http.Error(w, "This page is for a login that was not begun here.", http.StatusBadRequest)
		return
	}
	came, text := arrival{code: query.Get("code")}, "You are logged in. You can close this page."
	if came.code == "" {
		came.err, text = refusedLogin(query.Get("error")), "The login was refused. The command says why."
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintln(w, text)
	select {
	case r.came <- came:
	default: // the page was loaded again
	}
}

// refusedLogin returns the error for a login that returned an error code and no authorization code.
func refusedLogin(code string) error {
	const shown = 64
	return fmt.Errorf("the login was refused: %.*q", shown, code)
}

// awaitCode waits for the code.
func (r *redirect) awaitCode(ctx context.Context) (string, error) {
	select {
	case came := <-r.came:
		return came.code, came.err
	case <-ctx.Done():
		return "", fmt.Errorf("nobody has logged in: %w", ctx.Err())
	}
}

// closeServer shuts the server down once its page was written.
func (r *redirect) closeServer() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.server.Shutdown(ctx)
}
