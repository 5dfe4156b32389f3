import type { LinkProps } from '@tanstack/react-router'

/** The page of an identifier. */
export interface Target {
  readonly label: string
  readonly to: NonNullable<LinkProps['to']>
  readonly params: { readonly id: string }
}

/** Detail pages by the prefix of the identifiers of their items. */
const BY_PREFIX = [
  { prefix: 'wfr_', what: 'run', to: '/runs/$id' },
  { prefix: 'msg_', what: 'message', to: '/messages/$id' },
  { prefix: 'bulk_', what: 'bulk action', to: '/bulk-actions/$id' },
] as const

/** The page of an identifier that was typed or pasted; undefined for any other text. */
export function targetOf(text: string): Target | undefined {
  const id = text.trim()
  const found = BY_PREFIX.find(({ prefix }) => id.startsWith(prefix) && id.length > prefix.length)
  return found && /^[\w.:@-]+$/.test(id)
    ? { label: `Open the ${found.what} ${id}`, to: found.to, params: { id } }
    : undefined
}

/** Whether every word of a text is part of a name, in any case and order. */
export function isMatch(name: string, text: string): boolean {
  const lower = name.toLowerCase()
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word))
}
