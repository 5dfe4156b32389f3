import { Anchor, Modal, Text } from '@mantine/core'
import type { ConsoleSession } from '../../../../src/contract/console/session.js'
import { SignInForm } from './sign-in-form.js'

/** Covers a page whose session has ended, and asks for the key. The text that the user has typed into the page stays. */
export function SignInAgain({
  isOpen,
  email,
  leavesTo,
  onSignedIn,
}: {
  isOpen: boolean
  email: string
  /** The path of the sign-in page, for users who do not need the typed text. */
  leavesTo: string
  onSignedIn: (session: ConsoleSession) => void
}) {
  return (
    <Modal
      opened={isOpen}
      onClose={() => undefined}
      title="Your session has ended"
      size="sm"
      withCloseButton={false}
      closeOnClickOutside={false}
      closeOnEscape={false}
      // Above the dialogs of the page, so that the page no longer shows data of the account.
      zIndex={1_000}
      overlayProps={{ backgroundOpacity: 1, color: 'var(--hp-ground)' }}
    >
      <SignInForm email={email} onSignedIn={async (session) => onSignedIn(session)}>
        <Text size="sm">
          Sign in again to continue where you were: what you have typed is still there. Or{' '}
          <Anchor href={leavesTo} size="sm" underline="always">
            leave this page
          </Anchor>
          .
        </Text>
      </SignInForm>
    </Modal>
  )
}
