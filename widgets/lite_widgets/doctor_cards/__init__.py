"""What can run here."""

from .doctor_cards import DoctorCards

__all__ = ["DoctorCards"]
