import { useLocalStorage } from '@mantine/hooks'

/** How keys are shown. */
export interface KeysView {
  readonly kind: 'list' | 'tree'
  /** The text at the end of folder names and prefixes. */
  readonly separator: string
}

const DEFAULT: KeysView = { kind: 'list', separator: ':' }

/** How keys are shown; the browser keeps it for all databases. */
export const useKeysView = () =>
  useLocalStorage<KeysView>({ key: 'homeport-keys-view', defaultValue: DEFAULT, getInitialValueInEffect: false })
