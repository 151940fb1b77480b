package boot

import (
	"reflect"

	"github.com/flatcar/ignition/config/validate/report"
)

// validateIgnition calls Ignition's own validation of each value in a configuration, in the order of Ignition's package validate. That
// package finds the methods by their names, which switches off the linker's dead code elimination: it would double the size of the program.
func validateIgnition(v reflect.Value) (all []report.Entry) {
	if !v.IsValid() {
		return nil
	}
	if r, is := validateValue(v); is {
		if all = r.Entries; r.IsFatal() {
			return all
		}
	}
	switch v.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Pointer:
		all = append(all, validateIgnition(v.Elem())...)
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, validateIgnition(v.Index(i))...)
		}
	case reflect.Struct:
		for _, f := range ignitionFields(v) {
			if r, is := validateField(v.Interface(), f.name); is {
				all = append(all, r.Entries...)
			}
			all = append(all, validateIgnition(f.value)...)
		}
	}
	return all
}

// validateValue validates a value as a whole. A pointer to a value that validates itself is not validated twice.
func validateValue(v reflect.Value) (r report.Report, is bool) {
	type validator interface{ Validate() report.Report }
	x, is := v.Interface().(validator)
	if !is || v.Kind() == reflect.Pointer && (v.IsNil() || v.Elem().Type().Implements(reflect.TypeFor[validator]())) {
		return r, false
	}
	return x.Validate(), true
}

type ignitionField struct {
	name  string
	value reflect.Value
}

// ignitionFields lists the fields of a struct and of those that it embeds.
func ignitionFields(v reflect.Value) (out []ignitionField) {
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case !f.Anonymous:
			out = append(out, ignitionField{f.Name, v.Field(i)})
		case v.Field(i).Kind() == reflect.Struct:
			out = append(out, ignitionFields(v.Field(i))...)
		}
	}
	return out
}

// validateField validates one field of a struct.
func validateField(of any, field string) (r report.Report, is bool) {
	validate := map[string]func(any) (report.Report, bool){
		"Compression": by(func(x interface{ ValidateCompression() report.Report }) report.Report { return x.ValidateCompression() }),
		"Contents":    by(func(x interface{ ValidateContents() report.Report }) report.Report { return x.ValidateContents() }),
		"Device":      by(func(x interface{ ValidateDevice() report.Report }) report.Report { return x.ValidateDevice() }),
		"Devices":     by(func(x interface{ ValidateDevices() report.Report }) report.Report { return x.ValidateDevices() }),
		"Filesystem":  by(func(x interface{ ValidateFilesystem() report.Report }) report.Report { return x.ValidateFilesystem() }),
		"GUID":        by(func(x interface{ ValidateGUID() report.Report }) report.Report { return x.ValidateGUID() }),
		"Label":       by(func(x interface{ ValidateLabel() report.Report }) report.Report { return x.ValidateLabel() }),
		"Level":       by(func(x interface{ ValidateLevel() report.Report }) report.Report { return x.ValidateLevel() }),
		"Mode":        by(func(x interface{ ValidateMode() report.Report }) report.Report { return x.ValidateMode() }),
		"Name":        by(func(x interface{ ValidateName() report.Report }) report.Report { return x.ValidateName() }),
		"Partitions":  by(func(x interface{ ValidatePartitions() report.Report }) report.Report { return x.ValidatePartitions() }),
		"Path":        by(func(x interface{ ValidatePath() report.Report }) report.Report { return x.ValidatePath() }),
		"Size":        by(func(x interface{ ValidateSize() report.Report }) report.Report { return x.ValidateSize() }),
		"Source":      by(func(x interface{ ValidateSource() report.Report }) report.Report { return x.ValidateSource() }),
		"Start":       by(func(x interface{ ValidateStart() report.Report }) report.Report { return x.ValidateStart() }),
		"TypeGUID":    by(func(x interface{ ValidateTypeGUID() report.Report }) report.Report { return x.ValidateTypeGUID() }),
	}[field]
	if validate == nil {
		return r, false
	}
	return validate(of)
}

// by calls a method of a value that has it.
func by[T any](validate func(T) report.Report) func(of any) (report.Report, bool) {
	return func(of any) (r report.Report, has bool) {
		x, has := of.(T)
		if has {
			r = validate(x)
		}
		return r, has
	}
}
