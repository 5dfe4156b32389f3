import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.js'
import { shellRoute } from '../../app/root.js'

const home = createRoute({
  getParentRoute: () => shellRoute,
  path: '/',
  component: lazyPage(() => import('./home.js'), 'HomePage'),
  validateSearch: ({ period }: Record<string, unknown>): { period?: '1d' } => (period === '1d' ? { period } : {}),
})

/** The first page. */
export const homeRoutes = [home] as const
