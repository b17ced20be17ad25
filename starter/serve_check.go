package main

import (
	"fmt"
	"log/slog"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/internal/base/bookshelf"
	"reprise/internal/base/terminal"
	"reprise/internal/program/serve"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// flawed is a playbook of a folder that no request could start.
type flawed struct {
	name  string
	file  *source.File
	found source.Diagnostics
}

// flaws are the playbooks of a folder that cannot be started, or whose deliveries could
// not be distinguished from others. The values that a run supplies are not known yet.
func flaws(folder string, secrets tool.ConnectionResolver) []flawed {
	var all []flawed
	for _, name := range bookshelf.Names(folder) {
		file, found := flawsOf(folder, name, secrets)
		if errs := found.Errors(); len(errs) > 0 {
			all = append(all, flawed{name: name, file: file, found: errs})
		}
	}
	return all
}

// flawsOf checks one playbook of a folder.
func flawsOf(folder, name string, secrets tool.ConnectionResolver) (*source.File, source.Diagnostics) {
	text, err := bookshelf.Read(folder, name)
	file := source.NewFile(name+".yaml", text)
	if err != nil {
		return file, source.Diagnostics{{File: file.Name, Message: err.Error()}}
	}
	files := playbook.NewFiles((&starts{playbooks: folder}).read)
	book, found := playbook.Validate(file, activities.Default(), playbook.CheckOptions{Open: true, Files: files})
	if book == nil {
		return file, found
	}
	of := map[string]*playbook.Trigger{} // by the secret
	for _, trigger := range book.Triggers {
		flaw := func(format string, args ...any) {
			found = append(found, source.Diagnostic{File: file.Name, Pos: trigger.Pos, Message: fmt.Sprintf(format, args...)})
		}
		secret, err := serve.TriggerSecret(secrets, trigger)
		switch {
		case err != nil:
			flaw("the secret %q of this trigger cannot be used: %v; it is a connection of --connections, or %s",
				trigger.Secret, err, tool.ConnectionVariable(trigger.Secret))
		case of[secret] != nil && trigger.Secret != of[secret].Secret:
			flaw("the secrets %q and %q are the same text: anyone with a delivery of one could send it again as the other", of[secret].Secret, trigger.Secret)
		}
		if err == nil {
			of[secret] = trigger
		}
	}
	found.Sort()
	return file, found
}

// checkServed prints what is wrong with the playbooks of a folder, and refuses to serve
// then.
func (a *app) checkServed(folder string, secrets tool.ConnectionResolver) error {
	if folder == "" {
		return nil
	}
	all := flaws(folder, secrets)
	for _, one := range all {
		_, _ = fmt.Fprint(a.Err, one.file.FormatFirst(one.found, playbook.MaxShown))
	}
	if len(all) == 0 {
		return nil
	}
	return usageError("%s of --playbooks %s cannot be served; --allow-invalid serves the others", terminal.Count(len(all), "playbook"), folder)
}

// logFlaws says which playbooks are not served.
func logFlaws(logger *slog.Logger, folder string, secrets tool.ConnectionResolver) {
	if folder == "" {
		return
	}
	for _, one := range flaws(folder, secrets) {
		logger.Warn("a playbook cannot be served", "playbook", one.name, "problems", len(one.found), "first", one.found[0].String())
	}
}
