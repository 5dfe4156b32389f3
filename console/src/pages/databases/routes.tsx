import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.js'
import { shellRoute } from '../../app/root.js'
import { given, textAt } from '../../lib/search.js'
import { DATABASE_TABS, type DatabaseTab } from './tabs.js'

const list = createRoute({
  getParentRoute: () => shellRoute,
  path: '/databases',
  component: lazyPage(() => import('./list.js'), 'DatabasesPage'),
  validateSearch: (search: Record<string, unknown>): { create?: true; search?: string } => ({
    ...given({ search: textAt(search, 'search') }),
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
