import { ButtonLink } from '../../components/link.js'
import type { Choice } from './selector.js'
import type { Kind } from './words.js'

/** Buttons that lead to the wizard with everything that the filters of a list leave; the first is the main one. */
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
