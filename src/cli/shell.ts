/** Quotes a value for a POSIX shell: nothing in it is ever expanded or run. */
export function shellQuote(value: string): string {
  return /^[\w./:@%+=,-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`
}

/** `export NAME=value` lines for `eval` or a paste. */
export function shellExports(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `export ${name}=${shellQuote(value)}\n`)
    .join('')
}
