import { type Selectable, sql } from 'kysely'
import { charactersIn } from '../../base/index.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { UrlGroupsTable } from '../../store/schema/queues.js'
import { all, change, first, type Transaction } from '../../store/statement.js'

/** A URL group as it is stored. */
export type UrlGroupRow = Selectable<UrlGroupsTable>

/** Size of a URL group. */
export interface GroupSize {
  readonly name: string
  /** Bytes of its endpoints and headers. */
  readonly bytes: number
}

/** An endpoint of a URL group. */
export interface GroupEndpoint {
  readonly name?: string
  readonly url: string
}

/** Identifies an endpoint by name or URL. */
export interface EndpointRef {
  readonly name?: string | undefined
  readonly url?: string | undefined
}

interface GroupKey {
  accountId: string
  name: string
}

const oneGroup = query<GroupKey, UrlGroupRow>(({ db, p }) =>
  db.selectFrom('url_groups').selectAll().where('account_id', '=', p.accountId).where('name', '=', p.name),
)
const lockGroup = query<GroupKey, UrlGroupRow>(({ db, p, d }) =>
  d.forUpdate(db.selectFrom('url_groups').selectAll().where('account_id', '=', p.accountId).where('name', '=', p.name)),
)
const sizes = query<{ accountId: string }, GroupSize>(({ db, p }) =>
  db
    .selectFrom('url_groups')
    .select(['name', sql<number>`octet_length(endpoints) + octet_length(headers)`.as('bytes')])
    .where('account_id', '=', p.accountId)
    .orderBy('name'),
)
const namedGroups = query<{ accountId: string; names: readonly string[] }, UrlGroupRow>(({ db, p, d }) =>
  db
    .selectFrom('url_groups')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where(d.inTexts('name', p.names))
    .orderBy('name'),
)
const make = query<GroupKey & { now: number }>(({ db, p }) =>
  db
    .insertInto('url_groups')
    .values({
      account_id: p.accountId,
      name: p.name,
      headers: '{}',
      endpoints: '[]',
      created_at: p.now,
      updated_at: p.now,
    })
    .onConflict((conflict) => conflict.columns(['account_id', 'name']).doNothing()),
)
const setEndpoints = query<GroupKey & { endpoints: string; now: number }>(({ db, p }) =>
  db
    .updateTable('url_groups')
    .set({ endpoints: p.endpoints, updated_at: p.now })
    .where('account_id', '=', p.accountId)
    .where('name', '=', p.name),
)
const setHeaders = query<GroupKey & { headers: string; now: number }>(({ db, p }) =>
  db
    .updateTable('url_groups')
    .set({ headers: p.headers, updated_at: p.now })
    .where('account_id', '=', p.accountId)
    .where('name', '=', p.name),
)
const drop = query<GroupKey>(({ db, p }) =>
  db.deleteFrom('url_groups').where('account_id', '=', p.accountId).where('name', '=', p.name),
)

/** One group. */
export const get = read('urlGroups.get', function* (args: GroupKey): Transaction<UrlGroupRow | undefined> {
  return yield* first(oneGroup, args)
})

/** Names and sizes of an account's groups, ordered by name. The groups themselves may have megabytes. */
export const list = read('urlGroups.list', function* (args: { accountId: string }): Transaction<GroupSize[]> {
  return yield* all(sizes, args)
})

/** Groups by name. Missing ones are left out. */
export const some = read(
  'urlGroups.some',
  function* (args: { accountId: string; names: readonly string[] }): Transaction<UrlGroupRow[]> {
    return yield* all(namedGroups, args)
  },
)

/** Only this file writes the column. */
export const endpointsOf = (row: UrlGroupRow): GroupEndpoint[] => JSON.parse(row.endpoints) as GroupEndpoint[]

/** The endpoints of a group. Names and URLs are unique in it. A removed endpoint leaves a gap. */
class Endpoints {
  readonly #all: (GroupEndpoint | undefined)[] = []
  readonly #byName = new Map<string, number>()
  readonly #byUrl = new Map<string, number>()

  get left(): GroupEndpoint[] {
    return this.#all.filter((endpoint) => endpoint !== undefined)
  }

  /** Replaces the endpoints with the same name or the same URL, at most two, and takes the first of their places. */
  put(endpoint: GroupEndpoint): void {
    const { name, url } = endpoint
    const named = name === undefined ? undefined : this.#byName.get(name)
    const places = [named, this.#byUrl.get(url)].filter((place) => place !== undefined)
    for (const place of places) this.#remove(place)
    const at = Math.min(this.#all.length, ...places)
    this.#all[at] = endpoint
    if (name !== undefined) this.#byName.set(name, at)
    this.#byUrl.set(url, at)
  }

  #remove(place: number): void {
    const endpoint = this.#all[place]
    if (endpoint === undefined) return
    if (endpoint.name !== undefined) this.#byName.delete(endpoint.name)
    this.#byUrl.delete(endpoint.url)
    this.#all[place] = undefined
  }
}

/** Adds endpoints. An endpoint with the same name or URL is replaced. */
function merged(endpoints: readonly GroupEndpoint[], added: readonly GroupEndpoint[]): GroupEndpoint[] {
  const all = new Endpoints()
  for (const endpoint of [...endpoints, ...added]) all.put(endpoint)
  return all.left
}

/**
 * Locks a group until the commit, and creates it first if needed. Tries again if
 * the group is deleted before it is locked.
 */
function* makeOrLock(args: GroupKey & { now: number }): Transaction<UrlGroupRow> {
  for (;;) {
    yield* change(make, args)
    const group = yield* first(lockGroup, args)
    if (group) return group
  }
}

/** Most endpoints of a group, and most characters of all their names and URLs. */
export interface GroupLimits {
  readonly endpoints: number
  readonly characters: number
}

/**
 * Adds endpoints to a group, which is created if it does not exist. Returns `full` or `too_long`, without a change, if
 * the group would exceed `most`. A group that is already too long may become shorter.
 */
export const addEndpoints = write(
  'urlGroups.addEndpoints',
  function* (
    args: GroupKey & { endpoints: readonly GroupEndpoint[]; most: GroupLimits; now: number },
  ): Transaction<'added' | 'full' | 'too_long'> {
    const { most, ...rest } = args
    const group = yield* makeOrLock(args)
    const before = endpointsOf(group)
    const endpoints = merged(before, args.endpoints)
    if (endpoints.length > most.endpoints) return 'full'
    if (charactersIn(endpoints) > Math.max(most.characters, charactersIn(before))) return 'too_long'
    yield* change(setEndpoints, { ...rest, endpoints: JSON.stringify(endpoints) })
    return 'added'
  },
)

/** Removes endpoints and deletes the group when none is left. Returns whether the group existed. */
export const removeEndpoints = write(
  'urlGroups.removeEndpoints',
  function* (args: GroupKey & { endpoints: readonly EndpointRef[]; now: number }): Transaction<boolean> {
    const group = yield* first(lockGroup, args)
    if (!group) return false
    const names = new Set(args.endpoints.map(({ name }) => name))
    const urls = new Set(args.endpoints.map(({ url }) => url))
    const left = endpointsOf(group).filter(
      ({ name, url }) => (name === undefined || !names.has(name)) && !urls.has(url),
    )
    if (left.length === 0) yield* change(drop, args)
    else yield* change(setEndpoints, { ...args, endpoints: JSON.stringify(left) })
    return true
  },
)

/** Sets the default headers of a group. Returns whether the group exists. */
export const putHeaders = write(
  'urlGroups.putHeaders',
  function* (args: GroupKey & { headers: string; now: number }): Transaction<boolean> {
    return (yield* change(setHeaders, args)) === 1
  },
)

/** Deletes a group if it exists. Returns how many were deleted. */
export const remove = write('urlGroups.remove', function* (args: GroupKey): Transaction<number> {
  return yield* change(drop, args)
})
