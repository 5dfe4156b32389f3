import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.js'
import { shellRoute } from '../../app/root.js'

const home = createRoute({
  getParentRoute: () => shellRoute,
  path: '/',
  component: lazyPage(() => import('./home.js'), 'HomePage'),
})

/** The first page. */
export const homeRoutes = [home] as const
