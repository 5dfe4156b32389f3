/** The operations of the server as hooks: cached reads, keyed by endpoint and arguments, and changes. */
import { notifications } from '@mantine/notifications'
import {
  hashKey,
  type InfiniteData,
  type UseInfiniteQueryResult,
  type UseMutationResult,
  type UseQueryResult,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import type { Static, TSchema } from 'typebox'
import type { BodyShape, Endpoint } from '../../../src/contract/endpoint.js'
import { type ApiArgs, ApiError, api, hasUnknownOutcome, isSignedOut } from './client.js'

/** How often data that is about to change is read again, milliseconds. */
export const WATCH_MS = 1_000
/** How often data that changes quickly is read again, milliseconds. */
export const LIVE_MS = 3_000
/** How often data that changes slowly is read again, milliseconds. */
export const CALM_MS = 15_000

/** When a reading hook sends its request. */
interface ReadOptions {
  /** `false`: send no request yet. */
  readonly enabled?: boolean
}

/** The cache key of a read; `[endpoint.id]` alone is the prefix of all calls of an endpoint. */
export const keyOf = (endpoint: Pick<Endpoint, 'id'>, args: object): readonly unknown[] => [endpoint.id, args]

/**
 * Reads an endpoint; components with the same call share one request. `everyMs` is the interval in milliseconds after
 * which a visible page reads again; it may depend on the response. `undefined`: not again.
 */
export function useApi<Params extends TSchema, Query extends TSchema, Body extends BodyShape, Answer extends TSchema>(
  endpoint: Endpoint<Params, Query, Body, Answer>,
  args: ApiArgs<Params, Query, Body>,
  {
    everyMs,
    enabled = true,
  }: ReadOptions & { readonly everyMs?: number | ((answer: Static<Answer>) => number | undefined) | undefined } = {},
): UseQueryResult<Static<Answer>, Error> {
  return useQuery<Static<Answer>, Error>({
    queryKey: keyOf(endpoint, args),
    queryFn: ({ signal }) => api(endpoint, args, signal),
    enabled,
    refetchInterval: ({ state: { data, error } }) => {
      if (typeof everyMs !== 'function') return intervalAfter(error, everyMs)
      return intervalAfter(error, data === undefined ? LIVE_MS : everyMs(data))
    },
  })
}

/** When to read again. After a failure of the server soon, whatever `everyMs` is, because it may recover at any moment. */
function intervalAfter(error: Error | null, everyMs: number | undefined): number | false {
  if (isSignedOut(error)) return false
  return error !== null && hasUnknownOutcome(error) ? LIVE_MS : (everyMs ?? false)
}

/** Where a page begins: the query parameters that its request has in addition. */
export type Place = Readonly<Record<string, string | number>>

/** How a list is read page by page. */
interface PagesOptions<Page> extends ReadOptions {
  readonly everyMs?: number | undefined
  /** `undefined` when this was the last page. */
  readonly next: (page: Page) => Place | undefined
}

/**
 * Reads a list page by page. `data.pages` holds the loaded pages; `fetchNextPage` loads the next one. A refresh reads
 * all loaded pages again, so its interval is `everyMs` times their number: a long list costs the server no more than a
 * short one.
 */
export function useApiPages<
  Params extends TSchema,
  Query extends TSchema,
  Body extends BodyShape,
  Answer extends TSchema,
>(
  endpoint: Endpoint<Params, Query, Body, Answer>,
  args: ApiArgs<Params, Query, Body>,
  options: PagesOptions<Static<Answer>>,
): UseInfiniteQueryResult<InfiniteData<Static<Answer>>, Error> {
  const read = (place: Place | undefined, signal: AbortSignal) =>
    api(endpoint, { ...args, query: { ...(args.query as object | undefined), ...place } } as typeof args, signal)
  return usePages(endpoint, args, read, options)
}

/**
 * The same for pages that a function reads, for example one that needs the headers of the response.
 * @param args names the list in the cache.
 * @param read reads the page at a place, which is what `next` returned; `undefined`: the first page.
 */
export function usePages<Page>(
  endpoint: Pick<Endpoint, 'id'>,
  args: object,
  read: (place: Place | undefined, signal: AbortSignal) => Promise<Page>,
  options: PagesOptions<Page>,
): UseInfiniteQueryResult<InfiniteData<Page>, Error> {
  const { next, everyMs, enabled = true } = options
  return useInfiniteQuery<Page, Error, InfiniteData<Page>, readonly unknown[], Place | undefined>({
    queryKey: [...keyOf(endpoint, args), 'pages'],
    queryFn: ({ signal, pageParam }) => read(pageParam, signal),
    initialPageParam: undefined,
    getNextPageParam: next,
    enabled,
    // If only the filter has changed, keep the old rows until the new ones arrive.
    placeholderData: (before, query) => (hasSameParams(query?.queryKey[1], args) ? before : undefined),
    refetchInterval: ({ state: { data, error } }) =>
      intervalAfter(error, everyMs && everyMs * Math.max(1, data?.pages.length ?? 0)),
  })
}

function hasSameParams(before: unknown, args: object): boolean {
  if (typeof before !== 'object' || before === null) return false
  return (
    hashKey(['params' in before ? before.params : undefined]) === hashKey(['params' in args ? args.params : undefined])
  )
}

/** Options of a changing hook. */
export interface ChangeOptions<Answer> {
  /** Endpoints to read again afterwards, also after an error: the error may be due to a change made elsewhere. */
  readonly refreshes?: readonly Pick<Endpoint, 'id'>[]
  /** The notification after success; absent: none. */
  readonly done?: string | ((answer: Answer) => string)
  /** `inline`: the page shows the error (`error` of the result). If the user has left the page, a notification shows it. */
  readonly errors?: 'notify' | 'inline'
  readonly onDone?: (answer: Answer) => void
}

/** Calls a changing endpoint. Errors are shown with the text of the server. */
export function useChange<
  Params extends TSchema,
  Query extends TSchema,
  Body extends BodyShape,
  Answer extends TSchema,
>(
  endpoint: Endpoint<Params, Query, Body, Answer>,
  options: ChangeOptions<Static<Answer>> = {},
): UseMutationResult<Static<Answer>, Error, ApiArgs<Params, Query, Body>> {
  return useTask((args: ApiArgs<Params, Query, Body>) => api(endpoint, args), options)
}

/** The same for a change that is more than one call of one endpoint. */
export function useTask<Args, Answer>(
  work: (args: Args) => Promise<Answer>,
  { refreshes = [], done, errors = 'notify', onDone }: ChangeOptions<Answer> = {},
): UseMutationResult<Answer, Error, Args> {
  const queries = useQueryClient()
  const isUnmounted = useIsUnmounted()
  return useMutation<Answer, Error, Args>({
    mutationFn: work,
    onMutate: keepFocus,
    onSuccess: (answer) => {
      const message = typeof done === 'function' ? done(answer) : done
      if (message !== undefined) notifications.show({ message, color: 'green' })
      onDone?.(answer)
    },
    onError: (error) => {
      if (errors === 'notify' || isUnmounted()) showError(error)
    },
    onSettled: (_answer, refusal) => {
      const read = Promise.all(refreshes.map(({ id }) => queries.invalidateQueries({ queryKey: [id] })))
      // Show the error before the refresh: after a failed change, the reads may fail as well.
      return refusal === null ? read : undefined
    },
  })
}

/** A button that is disabled while its task runs loses the focus. Returns the focus to it, unless it was moved elsewhere. */
function keepFocus(): void {
  const button = document.activeElement
  if (!(button instanceof HTMLButtonElement)) return
  const watch = new MutationObserver(() => {
    if (button.disabled) return
    watch.disconnect()
    if (document.activeElement === document.body) button.focus()
  })
  watch.observe(button, { attributeFilter: ['disabled'] })
}

/** Returns a function that says whether the component was unmounted. */
function useIsUnmounted(): () => boolean {
  const isHere = useRef(false)
  useEffect(() => {
    isHere.current = true
    return () => {
      isHere.current = false
    }
  }, [])
  return () => !isHere.current
}

/** Shows an error for 12 seconds, because its text says what to do and takes time to read. */
export function showError(error: Error): void {
  const title = error instanceof ApiError && error.status < 500 && error.status !== 0 ? 'Refused' : 'The request failed'
  notifications.show({ title, message: error.message, color: 'red', autoClose: 12_000 })
}
