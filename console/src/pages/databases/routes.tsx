import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.js'
import { shellRoute } from '../../app/root.js'
import { given, textAt } from '../../lib/search.js'
import type { ListSearch } from './list-search.js'
import { DATABASE_TABS, type DatabaseTab } from './tabs.js'

const LIST_FIELDS = [
  'search',
  'state',
  'region',
  'plan',
  'size',
  'use',
  'created',
  'sort',
] as const satisfies readonly (keyof ListSearch)[]

const list = createRoute({
  getParentRoute: () => shellRoute,
  path: '/databases',
  component: lazyPage(() => import('./list.js'), 'DatabasesPage'),
  validateSearch: (search: Record<string, unknown>): { [Name in keyof ListSearch]: string } & { create?: true } => ({
    // The page checks the values, because the code for that is not part of the first load.
    ...given(Object.fromEntries(LIST_FIELDS.map((name) => [name, textAt(search, name)]))),
    ...(search.create === true && { create: true }),
  }),
})

const detail = createRoute({
  getParentRoute: () => shellRoute,
  path: '/databases/$id',
  component: lazyPage(() => import('./detail.js'), 'DatabasePage'),
  validateSearch: (search: Record<string, unknown>): { tab?: DatabaseTab } => {
    const tab = DATABASE_TABS.find((known) => known === search.tab)
    return tab === undefined ? {} : { tab }
  },
})

/** The list of databases, and one of them. */
export const databaseRoutes = [list, detail] as const
