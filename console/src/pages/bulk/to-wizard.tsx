import { ButtonLink } from '../../components/link.js'
import type { Choice } from './selector.js'
import type { Kind } from './words.js'

/** Buttons that open the wizard with the filters of a list; the first is the primary one. */
export function ToWizard({
  kinds,
  search,
}: {
  kinds: readonly (readonly [kind: Kind, label: string])[]
  search: Omit<Choice, 'kind'>
}) {
  return kinds.map(([kind, label], index) => (
    <ButtonLink
      key={kind}
      variant={index === 0 ? 'filled' : 'default'}
      to="/bulk-actions/new"
      search={{ kind, ...search }}
    >
      {label}
    </ButtonLink>
  ))
}
