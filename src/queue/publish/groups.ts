import { HomeportError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { PublishEntry } from '../transactions/messages.js'
import type { GroupEndpoint } from '../transactions/url-groups.js'
import * as urlGroups from '../transactions/url-groups.js'
import type { PublishItem } from '../types.js'
import { groupNameOf, parseDestination } from './destination.js'
import { type Drafting, draftMessage } from './draft.js'

/** A URL group, as publishing reads it. */
export interface UrlGroup {
  readonly endpoints: readonly GroupEndpoint[]
  /** Default headers of publications to the group; lower-case names. */
  readonly headers: Readonly<Record<string, string>>
}

/** URL groups by name. Groups that do not exist are absent. */
export type UrlGroups = ReadonlyMap<string, UrlGroup>

const NO_GROUPS: UrlGroups = new Map()

/** Reads the URL groups that destinations name. Synchronous if they name none. */
export function readGroups(
  store: Store,
  accountId: string,
  items: readonly Pick<PublishItem, 'destination'>[],
): Promise<UrlGroups> | UrlGroups {
  let names: Set<string> | undefined
  for (const { destination } of items) {
    const name = groupNameOf(destination)
    if (name === undefined) continue
    names ??= new Set()
    names.add(name)
  }
  return names ? readNamed(store, accountId, names) : NO_GROUPS
}

async function readNamed(store: Store, accountId: string, names: ReadonlySet<string>): Promise<UrlGroups> {
  const groups = new Map<string, UrlGroup>()
  for (const name of names) {
    const row = await store.run(urlGroups.get, { accountId, name })
    // This program wrote and validated both columns.
    if (row) groups.set(name, { endpoints: JSON.parse(row.endpoints), headers: JSON.parse(row.headers) })
  }
  return groups
}

/** Maximum of messages that one publish request may make. */
const MAX_MESSAGES = 10_000
/** Most bytes of bodies and headers of one publish request. Those of a URL group count once for each endpoint. */
const MAX_CONTENT_BYTES = 256 * 2 ** 20

/**
 * Refuses more messages than one publish request may make.
 * @throws HomeportError `setting_limit`.
 */
export function refuseTooMany(messages: number): void {
  if (messages <= MAX_MESSAGES) return
  const limit = `${MAX_MESSAGES} messages in one request`
  throw new HomeportError('setting_limit', { setting: 'The number of messages', found: String(messages), limit })
}

/** How many messages items make: one, or one for each endpoint of a URL group. */
function countMessages(items: readonly Pick<PublishItem, 'destination'>[], groups: UrlGroups): number {
  return items.reduce((sum, { destination }) => {
    const group = groups.get(groupNameOf(destination) ?? '')
    return sum + (group?.endpoints.length ?? 1)
  }, 0)
}

/** Bytes of the bodies and headers of the messages that items make. */
function contentBytes(items: readonly PublishItem[], groups: UrlGroups): number {
  return items.reduce((sum, { destination, body, headers }) => {
    const group = groups.get(groupNameOf(destination) ?? '')
    const bytes = (body?.byteLength ?? 0) + headerBytes(headers) + (group ? headerBytes(group.headers) : 0)
    return sum + bytes * (group?.endpoints.length ?? 1)
  }, 0)
}

function headerBytes(headers: PublishItem['headers']): number {
  let bytes = 0
  for (const name in headers) bytes += name.length + (headers[name]?.length ?? 0)
  return bytes
}

/**
 * Refuses publications to URL groups that would make more messages than one request may, or more content.
 * @throws HomeportError `setting_limit`.
 */
export function refuseLarge(items: readonly PublishItem[], groups: UrlGroups): void {
  if (groups.size === 0) return
  refuseTooMany(countMessages(items, groups))
  const bytes = contentBytes(items, groups)
  if (bytes <= MAX_CONTENT_BYTES) return
  const limit = `${MAX_CONTENT_BYTES} bytes for all messages of one request together`
  throw new HomeportError('setting_limit', { setting: 'The content of the messages', found: `${bytes} bytes`, limit })
}

/** The messages of one item: one, or one for each endpoint of a URL group. */
export interface ItemDraft {
  readonly kind: 'single' | 'group'
  readonly entries: readonly PublishEntry[]
}

/**
 * Turns an item into messages.
 * @throws HomeportError with the problem of the item, or of the URL group that it names.
 */
export function draftItem(item: PublishItem, drafting: Drafting, groups: UrlGroups): ItemDraft {
  const name = groupNameOf(item.destination)
  if (name === undefined) return { kind: 'single', entries: [draftMessage(item, drafting)] }
  const group = groups.get(name)
  if (!group) throw new HomeportError('url_group_not_found', { name: name.slice(0, 80) })
  const whole = { ...item, headers: { ...group.headers, ...item.headers } }
  const entries = group.endpoints.map(({ name: endpoint, url }) => {
    const target = { destination: parseDestination(url), topic: name, ...(endpoint !== undefined && { endpoint }) }
    return draftMessage(whole, drafting, target)
  })
  return { kind: 'group', entries }
}
