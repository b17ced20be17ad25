package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"reprise/activities"
	"reprise/internal/base/known"
)

// addPlaybookFlags adds the flags that say which playbooks the worker has, and knows.
func (o *options) addPlaybookFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.playbooks, "playbooks", os.Getenv("REPRISE_PLAYBOOKS"),
		"folder of playbooks that other playbooks run by name; default none [REPRISE_PLAYBOOKS]")
	flags.StringVar(&o.keys, "playbook-keys", os.Getenv("REPRISE_PLAYBOOK_KEYS"),
		"file of public ed25519 keys in PEM; playbooks signed with one of them (starter sign) count as known, like those in --playbooks "+
			"[REPRISE_PLAYBOOK_KEYS]")
	flags.BoolVar(&o.onlyKnown, "only-known", envBool("REPRISE_ONLY_KNOWN"),
		"run only known playbooks: those in the folder of --playbooks, or signed by a key of --playbook-keys [REPRISE_ONLY_KNOWN]")
}

// knowPlaybooks sets which playbooks the worker knows. The folder of playbooks proves nothing where tool file may write to it, so
// it is private if it is below the worker's folder, and counts for nothing if it is that folder, or around it.
func (o *options) knowPlaybooks(resources *activities.Resources) error {
	folder := o.playbooks
	if folder != "" {
		below, err := isBelow(cmp.Or(o.directory, "."), folder)
		if err != nil {
			return fmt.Errorf("--playbooks: %w", err)
		}
		if below {
			folder = ""
		} else {
			resources.Private = append(resources.Private, folder)
		}
	}
	if o.onlyKnown && folder == "" && o.keys == "" {
		if o.playbooks != "" {
			return errors.New("--only-known: playbooks may write to the folder of --playbooks, since it has --directory in it; use another one, or --playbook-keys")
		}
		return errors.New("--only-known requires --playbooks or --playbook-keys, or no playbook could run")
	}
	var err error
	resources.Known, err = known.OpenFolder(folder, o.keys)
	if err != nil {
		return fmt.Errorf("--playbook-keys: %w", err)
	}
	resources.Known.Only = o.onlyKnown
	return nil
}

// isBelow reports whether a folder is another one, or somewhere in it, also by links.
func isBelow(folder, other string) (bool, error) {
	top, err := os.Stat(other)
	if err != nil {
		return false, err
	}
	path, err := filepath.Abs(folder)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	for err == nil {
		info, statErr := os.Stat(path)
		if statErr == nil && os.SameFile(top, info) {
			return true, nil
		}
		if path == filepath.Dir(path) {
			return false, statErr
		}
		path = filepath.Dir(path)
	}
	return false, err
}
