/** The result of one check. */
export type Finding =
  | { readonly status: 'ok'; readonly name: string; readonly found: string }
  | { readonly status: 'warn' | 'fail'; readonly name: string; readonly found: string; readonly todo: string }

/** The check passed. */
export const ok = (name: string, found: string): Finding => ({ status: 'ok', name, found })

/** The server works, but the operator should act. `todo` says what to do. */
export const warn = (name: string, found: string, todo: string): Finding => ({ status: 'warn', name, found, todo })

/** The server would not start or not work. `todo` says what to do. */
export const fail = (name: string, found: string, todo: string): Finding => ({ status: 'fail', name, found, todo })

/** Findings as lines for people: the mark, the subject, what was found, and below it what to do. */
export function renderFindings(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ name }) => name.length))
  return findings
    .map((finding) => {
      const line = `${finding.status.padEnd(4)}  ${finding.name.padEnd(width)}  ${finding.found}\n`
      return finding.status === 'ok' ? line : `${line}${' '.repeat(width + 8)}${finding.todo}\n`
    })
    .join('')
}
