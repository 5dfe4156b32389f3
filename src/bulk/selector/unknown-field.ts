import { nearest } from '../../base/index.js'

/** What callers who know a client library's own words most likely mean. */
const MEANT: Readonly<Record<string, string>> = {
  ids: 'Use `workflowRunIds`.',
  urlStartingWith: 'Use `workflowUrl`, which compares the beginning of the URL.',
  workflowUrlStartingWith: 'Use `workflowUrl`, which compares the beginning of the URL.',
  all: 'Leave the selector empty to cancel every run.',
  filter: 'Put the filters at the top level.',
}

/** Says that a field is not known, which one was most likely meant, and which there are. */
export function unknownField(name: string, known: readonly string[]): string {
  const shown = name.length > 60 ? `${name.slice(0, 60)}…` : name
  const guess = nearest(name, known)
  const hint = Object.hasOwn(MEANT, name) ? ` ${MEANT[name]}` : guess ? ` Did you mean \`${guess}\`?` : ''
  return `\`${shown}\` is not a field of a selector.${hint} Fields: ${known.join(', ')}.`
}
