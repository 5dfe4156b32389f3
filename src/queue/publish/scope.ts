import { scopeRefusal, type TokenScope } from '../../http/index.js'
import type { PublishItem } from '../types.js'

/**
 * Matches the settings of an item, and of its callbacks, that choose a queue or a flow-control key. Callbacks are
 * messages too; their settings have one prefix for each level of nesting. Forwarded headers are not settings.
 */
const CHOOSES = /^upstash-(?:(?:failure-)?callback-)*(queue-name|flow-control-key)$/

/**
 * Refuses items that a token for one queue or one flow-control key must not publish: items that name another queue or
 * key, also for a callback, and items of a workflow.
 * @param isPlain whether an item becomes a plain message.
 * @throws HomeportError `token_scope`; nothing is published then.
 */
export function refuseOutOfScope(
  scope: TokenScope,
  items: readonly PublishItem[],
  isPlain: (item: PublishItem) => boolean,
): void {
  if (!('name' in scope)) return
  const refused = items.find((item) => !isPlain(item) || !isWithin(scope, item))
  if (refused === undefined) return
  const needed = scope.kind === 'queue' ? 'to this queue' : 'under this flow-control key'
  throw scopeRefusal(scope, `this message: it may only publish plain messages ${needed}, without another queue or key`)
}

/**
 * Prefix of the deduplication keys of a token for one queue or flow-control key. No
 * other key of the account begins with it.
 */
export const dedupNamespaceOf = ({ kind, name }: Extract<TokenScope, { name: string }>): string => `${kind} ${name} `

function isWithin(scope: Extract<TokenScope, { name: string }>, item: PublishItem): boolean {
  const setting = scope.kind === 'queue' ? 'queue-name' : 'flow-control-key'
  for (const [header, value] of Object.entries(item.headers)) {
    const [, chosen] = CHOOSES.exec(header) ?? []
    if (chosen === undefined || value.trim() === '') continue
    if (chosen !== setting || value.trim() !== scope.name) return false
  }
  // As `queueNameOf` reads it: the name in the path wins, and an empty one there means no queue.
  const queue = (item.queue ?? item.headers['upstash-queue-name'])?.trim() ?? ''
  if (scope.kind === 'queue') return queue === scope.name
  return queue === '' && item.headers['upstash-flow-control-key']?.trim() === scope.name
}

/**
 * Refuses to read another queue or flow-control key than that of the token.
 * @throws HomeportError `token_scope`.
 */
export function refuseOtherName(scope: TokenScope | undefined, kind: 'queue' | 'flow_control', name: string): void {
  if (scope === undefined || !('name' in scope)) return
  if (scope.kind !== kind || scope.name !== name) throw scopeRefusal(scope, `reading "${name.slice(0, 80)}"`)
}
