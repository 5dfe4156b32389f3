/** Who is signed in, and what this server offers. Both stay the same while the page is open, until somebody signs out. */
import { MutationCache, QueryCache, QueryClient, queryOptions, useSuspenseQuery } from '@tanstack/react-query'
import {
  type ConsoleSession,
  type ConsoleSettings,
  getConsoleSession,
  getConsoleSettings,
} from '../../../src/contract/console/console.js'
import { ApiError, api } from './client.js'
import { keyOf } from './hooks.js'

const isGone = (error: unknown): boolean => error instanceof ApiError && error.status === 401

const onSignedOut = new Set<() => void>()

/** Calls back when the server does not know the session any more. */
export function whenSignedOut(callback: () => void): void {
  onSignedOut.add(callback)
}

function noticeEnd(error: Error): void {
  if (isGone(error)) for (const callback of onSignedOut) callback()
}

/** The cache of everything that was read. Refusals are not tried again: they would be refused again. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      // The server may be this computer, or in a network that leads nowhere: what the browser thinks of the internet says
      // nothing about it.
      networkMode: 'always',
      retry: (failures, error) => failures < 2 && error instanceof ApiError && [0, 503].includes(error.status),
    },
    mutations: { networkMode: 'always' },
  },
  queryCache: new QueryCache({ onError: noticeEnd }),
  mutationCache: new MutationCache({ onError: noticeEnd }),
})

/** Who is signed in; `null` when nobody is. */
export const sessionQuery = queryOptions<ConsoleSession | null>({
  queryKey: keyOf(getConsoleSession, {}),
  queryFn: async ({ signal }) => {
    try {
      return await api(getConsoleSession, {}, signal)
    } catch (error) {
      if (isGone(error)) return null
      throw error
    }
  },
  staleTime: Number.POSITIVE_INFINITY,
})

/** What this server offers. */
export const settingsQuery = queryOptions<ConsoleSettings>({
  queryKey: keyOf(getConsoleSettings, {}),
  queryFn: ({ signal }) => api(getConsoleSettings, {}, signal),
  staleTime: Number.POSITIVE_INFINITY,
})

/** Who is signed in. For pages inside of the shell, where somebody is. */
export function useSession(): ConsoleSession {
  const { data } = useSuspenseQuery(sessionQuery)
  if (data === null) throw new Error('nobody is signed in')
  return data
}

/** Whether changes are allowed; with a read-only key the pages offer none. */
export function useCanWrite(): boolean {
  return useSession().access === 'write'
}

/** What this server offers. For pages inside of the shell, which is drawn once it is known. */
export function useSettings(): ConsoleSettings {
  return useSuspenseQuery(settingsQuery).data
}
