import tabler from '@iconify-json/tabler/icons.json' with { type: 'json' }
import type { Plugin } from 'vite'

const PREFIX = 'icon:'
/** Vite leaves modules alone whose names begin so. */
const OURS = '\0'
/** Every drawing says how it is drawn; `components/icon.tsx` says it for all. */
const MANNER = / (?:fill="none"|stroke="currentColor"|stroke-(?:linecap|linejoin)="round"|stroke-width="2")/g

const drawings: Readonly<Record<string, { readonly body: string }>> = tabler.icons

/**
 * Makes `import IconTrash from 'icon:trash'` the component of one Tabler icon, so that the bundle holds just those that
 * are in use. They come from one file: a package with a module for each of its thousands takes longer to install than
 * all others together.
 */
export function icons(): Plugin {
  return {
    name: 'icons',
    resolveId: (source) => (source.startsWith(PREFIX) ? OURS + source : undefined),
    load(id) {
      if (!id.startsWith(OURS + PREFIX)) return undefined
      const name = id.slice(OURS.length + PREFIX.length)
      const drawing = drawings[name]
      if (!drawing) return this.error(`There is no Tabler icon named "${name}".`)
      const body = JSON.stringify(drawing.body.replace(MANNER, ''))
      return `import { drawn } from '/src/components/icon.tsx'\nexport default drawn(${body})\n`
    },
  }
}
