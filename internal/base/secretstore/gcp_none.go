//go:build !allclouds

package secretstore

import "context"

// loginToGoogle fails: Google's libraries are only part of builds with the tag allclouds.
func loginToGoogle(context.Context) (googleLogin, error) {
	return googleLogin{}, unreadable("this program was built without support for gcp; build with -tags allclouds, or use the images")
}
