import tabler from '@iconify-json/tabler/icons.json' with { type: 'json' }
import type { Plugin } from 'vite'

const PREFIX = 'icon:'
/** The prefix of virtual modules, which Vite does not resolve as files. */
const OURS = '\0'
/** The drawing attributes of every icon, which `components/icon.tsx` sets once for all. */
const MANNER = / (?:fill="none"|stroke="currentColor"|stroke-(?:linecap|linejoin)="round"|stroke-width="2")/g

const drawings: Readonly<Record<string, { readonly body: string }>> = tabler.icons

/**
 * Resolves `import IconTrash from 'icon:trash'` to the component of one Tabler icon, so that the bundle has only the
 * icons in use. They are read from one file: a package with one module per icon takes longer to install than all other
 * packages together.
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
