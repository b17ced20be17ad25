//go:build allclouds

package secretstore

import (
	"context"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
)

var (
	googleLock        sync.Mutex
	googleCredentials *auth.Credentials // nil before they are needed
)

// loginToGoogle returns the credentials that Google's own programs would use on this machine.
func loginToGoogle(ctx context.Context) (googleLogin, error) {
	found, err := detectGoogle()
	if err != nil {
		return googleLogin{}, err
	}
	token, err := found.Token(ctx)
	if err != nil {
		return googleLogin{}, unreadable("Google gives no token for the credentials of this machine")
	}
	project, err := found.ProjectID(ctx)
	if err != nil {
		project = ""
	}
	return googleLogin{token: token.Value, project: project}, nil
}

// detectGoogle finds the credentials once. Those that are not there are looked for again.
func detectGoogle() (*auth.Credentials, error) {
	googleLock.Lock()
	defer googleLock.Unlock()
	if googleCredentials != nil {
		return googleCredentials, nil
	}
	found, err := credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{"https://www.googleapis.com/auth/cloud-platform"}})
	if err != nil {
		return nil, unreadable("there are no credentials of Google on this machine: set GOOGLE_APPLICATION_CREDENTIALS, or use a machine with a service account")
	}
	googleCredentials = found
	return found, nil
}
