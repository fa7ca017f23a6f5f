"""What bash runs around each command: the shell's state put back before it, and written down behind it.

Law: constant texts; builtins only, so that no PATH, alias or function of the command's changes what they do. State is
all variables, functions, aliases, options and the umask; the directory is told apart, since the caller starts there.
"""

# On one line, so that bash counts the command's lines from 1 where it complains of one.
LINE = 'source "$1"; eval "$__cutline_text"; __cutline_end'
"""For `bash -c`, with four arguments: the file that holds AROUND, the state's file, the command's, and whether state is
kept ("" for no)."""

AROUND = r"""
__cutline_state=$2 __cutline_text=$(<"$3") __cutline_keep=$4
builtin set --
__cutline_save() {
  builtin local __cutline_line __cutline_name __cutline_skip=
  {
    builtin declare -p | while IFS= builtin read -r __cutline_line; do
      if [[ $__cutline_line == 'declare -'* ]]; then
        __cutline_name=${__cutline_line#declare -* }
        case ${__cutline_name%%=*} in
          BASH|BASHPID|BASHOPTS|BASH_*|DIRSTACK|EUID|UID|PPID|SHELLOPTS|GROUPS|FUNCNAME|PIPESTATUS|_|SHLVL|RANDOM|SRANDOM|\
          SECONDS|EPOCHSECONDS|EPOCHREALTIME|LINENO|COMP_*|PWD|IFS|__cutline_*|CUTLINE_CALL) __cutline_skip=1 ;;
          *) __cutline_skip= ;;
        esac
      fi
      [[ $__cutline_skip ]] || builtin printf '%s\n' "$__cutline_line"
    done
    builtin unset -f __cutline_save __cutline_end
    builtin declare -f
    builtin declare -F | while IFS=' ' builtin read -r __cutline_line __cutline_line __cutline_name; do
      [[ $__cutline_line != *x* ]] || builtin printf 'builtin export -f %q\n' "$__cutline_name"
    done
    builtin printf '%s\n' "$__cutline_aliases" "$__cutline_shopt" "$__cutline_mask" "$__cutline_options"
    builtin printf 'IFS=%q\n# whole\n' "$__cutline_ifs"
  } >|"$__cutline_state.new"
  builtin printf '%s' "$PWD" >|"$__cutline_state.directory"
}
__cutline_end() {
  __cutline_code=$?
  { __cutline_options=$(builtin set +o); builtin set +xvefu; builtin trap - DEBUG ERR RETURN; } 2>/dev/null
  __cutline_ifs=$IFS; IFS=$' \t\n'
  __cutline_shopt=$(builtin shopt -p); __cutline_aliases=$(builtin alias -p); __cutline_mask=$(builtin umask -p)
  __cutline_trap=$(builtin trap -p EXIT)
  [[ $__cutline_trap != *__cutline_end* ]] || builtin trap - EXIT
  [[ ! $__cutline_keep ]] || __cutline_save 2>/dev/null
  builtin exit "$__cutline_code"
}
builtin trap __cutline_end EXIT
[[ ! -e $__cutline_state ]] || builtin source "$__cutline_state" 2>/dev/null
"""
