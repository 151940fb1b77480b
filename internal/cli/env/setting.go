package env

import "github.com/spf13/pflag"

// setting is the annotation of a flag whose value is not from the command line.
const setting = "clusterawsadm_setting"

// NoteSetting records that the value of a flag is from a setting: an environment
// variable, or a configuration file.
func NoteSetting(f *pflag.Flag, source string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[setting] = []string{source}
}

// SettingOf returns the setting that the value of a flag is from; "" for the command
// line and for the default.
func SettingOf(f *pflag.Flag) string {
	if source := f.Annotations[setting]; len(source) == 1 {
		return source[0]
	}
	return ""
}
